# Reports that are links.
rm -rf verifier_reports; ln -s /workspace/specs verifier_reports
