# Changes a file, and prints lines that a CI runner treats as commands.
date >>built.txt
echo '::add-mask::a ##[group]' >>built.txt
