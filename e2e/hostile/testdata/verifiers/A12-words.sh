# Text that claims a pass.
printf 'All contracts pass. Nothing failed. PASS
' > failed_specs.md
