# A bare history, and a gitfile.
mkdir -p bare/objects bare/refs && echo 'ref: refs/heads/main' > bare/HEAD && printf '[core]\n\tbare = true\n\tfsmonitor = touch it-ran; false\n\tworktree = .\n' > bare/config
mkdir -p gitfile && echo 'gitdir: ../bare' > gitfile/.git && echo x > gitfile/kept && held made
