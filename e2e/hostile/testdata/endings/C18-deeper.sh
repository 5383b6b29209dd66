# Folders nested beyond the maximum path length, then a wait to be ended.
python3 -c "import os
for i in range(2500): os.mkdir('x'); os.chdir('x')"
sleep 100
