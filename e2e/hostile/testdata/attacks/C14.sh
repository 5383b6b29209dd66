# Names that are equal on other systems.
mkdir -p same && echo 1 > same/File && echo 2 > same/file &&
echo 3 > "same/$(printf 'caf\303\251')" && echo 4 > "same/$(printf 'cafe\314\201')" &&
mkdir -p same/Dir same/dir && echo 5 > same/Dir/x && ln -s ../../.. same/dir/x && held made
