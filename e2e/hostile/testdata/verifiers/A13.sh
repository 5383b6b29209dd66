# A million line ends.
yes '' | head -c 1000000 > failed_specs.md
