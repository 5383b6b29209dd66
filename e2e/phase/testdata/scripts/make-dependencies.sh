# app.prepare of TestAppCopy: makes FOLDERS folders of ten files of SIZE bytes each.
set -e
head -c SIZE /dev/zero > /tmp/file
for d in $(seq FOLDERS); do
  mkdir -p "deps/d$d"
  cd "deps/d$d"
  tee f0 f1 f2 f3 f4 f5 f6 f7 f8 < /tmp/file > f9
  cd ../..
done
