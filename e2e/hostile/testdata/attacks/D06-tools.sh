# Tools that the provider runs itself.
refused search -X POST -d '{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"google_search":{}}]}' "$base$m:generateContent"
refused search-camel -X POST -d '{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"googleSearch":{}}]}' "$base$m:generateContent"
refused code -X POST -d '{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"code_execution":{}}]}' "$base$m:generateContent"
refused url -X POST -d '{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"url_context":{}}]}' "$base$m:generateContent"
refused twice -X POST -d '{"contents":[{"parts":[{"text":"x"}]}],"tools":[],"tools":[{"google_search":{}}]}' "$base$m:generateContent"
refused escape -X POST -d '{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"google\u005fsearch":{}}]}' "$base$m:generateContent"
