# A hook in a history that can be written to.
printf '#!/bin/sh\ntouch it-ran\n' > .git/hooks/pre-commit
chmod +x .git/hooks/pre-commit
