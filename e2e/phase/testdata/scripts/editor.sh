#!/bin/sh
# The editor of a user who writes the specs next to it, and sets the scripted agent.
dir=$(dirname "$0")
for file; do
  case $file in
  *phase?.md)
    cp "$dir/${file##*/}" "$file"
    ;;
  *config.yaml)
    cp "$dir/scenario.yaml" .abl
    sed -i -e 's/^agent: gemini/agent: scripted\nagents: {scripted: {scenario: .abl\/scenario.yaml}}/' \
      -e 's/npm start/node server.mjs/; s/path: .health/path: \//' "$file"
    ;;
  esac
done
