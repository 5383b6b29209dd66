# A million empty lines.
yes '' | head -c 1000000 > failed_specs.md
