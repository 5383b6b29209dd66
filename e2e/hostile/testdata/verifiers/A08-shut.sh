# A directory without permissions.
mkdir -p failed_specs.md/sub && echo x > failed_specs.md/sub/x && chmod 000 failed_specs.md/sub failed_specs.md
