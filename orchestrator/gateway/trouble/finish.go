package trouble

import "strings"

// ends are what the providers' words for the end of an answer mean, in lower case.
// Others are an end as it should be, or one that the agent itself goes on from.
var ends = map[string]Kind{
	"": Unended, "max_tokens": Length, "length": Length, "max_output_tokens": Length, "model_context_window_exceeded": Window,
	"safety": Filter, "recitation": Filter, "language": Filter, "blocklist": Filter, "prohibited_content": Filter, "spii": Filter,
	"image_safety": Filter, "content_filter": Filter, "refusal": Filter, "other": Filter,
}

// OfFinish is what is wrong with an answer that ended with this word, "" for nothing.
func OfFinish(word string) Kind { return ends[strings.ToLower(word)] }
