# A directory replaced with an outside link, and a file with a directory.
mkdir -p was && echo x > was/f && rm -rf was && ln -s /workspace/specs was && mkdir -p report.md && held made
