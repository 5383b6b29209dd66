# Follows print-the-key.sh in the same shell, and refutes a contract with the same text.
rm -rf "$k"
{
  printf 'SPEC: GET / %s\nINPUT: %s HOSTILE\nOBSERVED: %s\n' "$k" "$(printf %s "$k" | base64)" "$(printf %s "$k" | jq -sRr @uri)"
  printf 'SPEC: %s HOSTILE is no entry\n' "$k"
} >failed_specs.md
