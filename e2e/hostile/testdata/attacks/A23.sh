# Names that other systems treat as .git or as devices.
mkdir -p odd/.GIT odd/GIT~1 && echo x > odd/.GIT/config && echo x > odd/GIT~1/config &&
for n in aux.c COM1 con.txt git~1 .git. '.git ' "$(printf '.g\342\200\214it')" '.git::$INDEX_ALLOCATION' 'a\.git' \
  '..foo' '...' '-rf' 'a:b'; do
  echo x > "odd/$n"
done
held made
