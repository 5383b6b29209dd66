# A submodule whose name is an option.
printf '[submodule "x"]\n\tpath = -x\n\turl = -u./evil\n' > .gitmodules && held made
