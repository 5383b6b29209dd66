# Directories nested beyond the maximum path length.
mkdir failed_specs.md && cd failed_specs.md && python3 -c "import os
for i in range(40): os.mkdir('deep' * 50); os.chdir('deep' * 50)" && cd .. && chmod 500 failed_specs.md/*/*
