# Many small files.
mkdir -p many && cd many && seq 1 8000 | xargs touch && held made
