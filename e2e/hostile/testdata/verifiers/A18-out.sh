# A report that links outside.
rm -rf verifier_reports; mkdir verifier_reports; for i in $(seq 1 40); do ln -s ../../../.env verifier_reports/phase1_v${i}_20990101T000000Z.md; done
