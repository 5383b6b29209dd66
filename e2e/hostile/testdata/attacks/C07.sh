# FIFOs in place of content, ignore rules and reports.
mkdir -p fifos && mkfifo fifos/f fifos/.gitignore .git-fifo .gitmodules.fifo && rm -rf .gitattributes && mkfifo .gitattributes && held made
