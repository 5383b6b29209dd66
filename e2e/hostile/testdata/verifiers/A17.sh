# A hundred thousand reports.
mkdir -p verifier_reports && cd verifier_reports && seq 1 20000 | sed 's/^/r/' | xargs touch; printf x > phase1_v9_20990101T000000Z.md
