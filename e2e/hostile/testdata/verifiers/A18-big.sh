# An empty report, and huge ones of other names.
rm -rf verifier_reports; mkdir verifier_reports; for i in $(seq 1 40); do : > verifier_reports/phase1_v${i}_20990101T000000Z.md; done; truncate -s 1G verifier_reports/phase1.md
