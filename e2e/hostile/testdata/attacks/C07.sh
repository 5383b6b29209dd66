# FIFOs, where content, ignore rules and reports are read.
mkdir -p fifos && mkfifo fifos/f fifos/.gitignore .git-fifo .gitmodules.fifo && rm -rf .gitattributes && mkfifo .gitattributes && held made
