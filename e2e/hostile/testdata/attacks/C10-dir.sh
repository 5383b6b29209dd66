# A directory that becomes a link to outside, and a file a directory.
mkdir -p was && echo x > was/f && rm -rf was && ln -s /workspace/specs was && mkdir -p report.md && held made
