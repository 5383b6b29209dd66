# Requests the model once. It fails if the response is not a model's.
curl -sS -f -m 60 -H "x-goog-api-key: $GEMINI_API_KEY" -d '{"contents":[]}' \
  "$GOOGLE_GEMINI_BASE_URL/v1beta/models/$ABL_MODEL:generateContent" | grep -q usageMetadata
