# An agent that speaks the Agent Client Protocol. $1 is how it ends: well, refusal, error, exit or hang.
# What it is asked is in the file asked.
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'"$1"'}}'; }

say 'a notice before the protocol'
while read -r line; do
	printf '%s\n' "$line" >>asked
	id=${line#*'"id":'}
	id=${id%%,*}
	case $line in
	*'"method":"initialize"'*)
		say '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":1}}'
		;;
	*'"method":"session/new"'*)
		say '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"s-1","configOptions":[{"id":"m","category":"model","currentValue":"x/other","options":[{"value":"x/other"},{"value":"x/my-model"}]},{"id":"think","category":"thought_level","currentValue":"off","options":[{"value":"off"},{"value":"high"}]}]}}'
		;;
	*'"method":"session/set_config_option"'*)
		say '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
		;;
	*'"method":"session/prompt"'*)
		prompt=$id
		update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I write "}}'
		update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a file."}}'
		update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"write","kind":"edit","status":"pending","rawInput":{}}'
		update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress","rawInput":{"filePath":"hello.txt"}}'
		say '{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"options":[{"optionId":"no","kind":"reject_once"},{"optionId":"yes","kind":"allow_once"}]}}'
		;;
	*'"id":"p1"'*)
		update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"written"}}]}'
		say '{"jsonrpc":"2.0","id":"p2","method":"fs/read_text_file","params":{}}'
		;;
	*'"id":"p2"'*)
		update '{"sessionUpdate":"tool_call","toolCallId":"c2","title":"Run it","kind":"execute","status":"failed"}'
		update '{"sessionUpdate":"a_new_one","content":7}'
		update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}'
		case $1 in
		exit) exit 3 ;;
		hang) ;;
		error) say '{"jsonrpc":"2.0","id":'"$prompt"',"error":{"code":-32603,"message":"Internal error","data":{"details":"400 no"}}}' ;;
		refusal) say '{"jsonrpc":"2.0","id":'"$prompt"',"result":{"stopReason":"refusal"}}' ;;
		*) say '{"jsonrpc":"2.0","id":'"$prompt"',"result":{"stopReason":"end_turn"}}' ;;
		esac
		;;
	esac
done
