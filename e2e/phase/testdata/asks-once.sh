# Requests the model once, with a shell as its tool, and does not run the command in the response.
env >env.txt
jq -Rs --arg model "$ABL_MODEL" '{model: $model, messages: [{role: "user", content: .}],
  tools: [{type: "function", function: {name: "bash", parameters: {type: "object"}}}]}' "$ABL_PROMPT" |
	curl -sS --fail-with-body "$ABL_BASE_URL/chat/completions" -H "Authorization: Bearer $ABL_TOKEN" \
		-H 'Content-Type: application/json' --data @-
