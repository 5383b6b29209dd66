# A directory.
mkdir -p failed_specs.md/sub && echo x > failed_specs.md/sub/x
