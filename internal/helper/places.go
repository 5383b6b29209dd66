// Package helper holds what abl and its helper in a box say to each other: places,
// files and messages. It does nothing else, so that prompts, mounts and the
// helper agree on it.
package helper

// Inside every box.
const (
	// The Builder's workspace; the app's copy of the tree stands at the same path.
	Src    = "/workspace/src"
	Tests  = "/workspace/tests" // the Verifier's workspace
	Specs  = "/workspace/specs"
	Bin    = "/abl/bin" // the static helper under its names
	In     = "/abl/in"  // what abl hands to this call
	Prompt = "/abl/in/prompt.md"
	Run    = "/abl/in/run.json"      // for abl-run
	Cmds   = "/abl/in/commands.json" // for abl-cmd
	Broker = "/abl/in/broker.json"   // for abl-broker
	Probe  = "/abl/in/probe.json"    // what has to hold in the box, for its first program
	Out    = "/abl/out/stdout"
	Err    = "/abl/out/stderr"
	Events = "/abl/out/events"
	AppLog = "/abl/out/app.log"
	Record = "/abl/out/record" // what a witness saw
	Door   = "/abl/door"       // where the app's holder and those of its tests meet
	Home   = "/home/agent"
	User   = "agent" // name of whom a role's work runs as

	// The image's own files with names of users and groups, and the same names with a dot in Home.
	Users      = "/abl/user"
	PasswdFile = "passwd"
	GroupFile  = "group"

	// The sockets in a door.
	AppSocket    = "app"
	BrokerSocket = "broker"

	// Files for a program and from it, where ABL_EXCHANGE names no other folder.
	Exchange = "/tmp/exchange"
)

// LogMax is how many bytes of the app's output its broker keeps in AppLog.
const LogMax = 64 << 20

// Names under which the one static helper is started (links in Bin).
const (
	HelperCmd    = "abl-cmd"    // declared commands by name, and the built-in ones
	HelperRun    = "abl-run"    // starts an agent, its output into files, with a deadline
	HelperAgent  = "abl-agent"  // the scripted agent
	HelperACP    = "abl-acp"    // asks an agent by the Agent Client Protocol
	HelperBroker = "abl-broker" // starts and probes the app, serves abl-cmd
	// Holds a network namespace, answers DNS with "no such name", passes on what goes to the app.
	HelperHolder = "abl-holder"
	HelperProbe  = "abl-probe" // looks by itself, or answers others' probes
	HelperKill   = "abl-kill"  // kills the processes of a container that the engine cannot stop
)

// Gateway is the name of the sidecar's program, in Bin of its own image.
const Gateway = "abl-gateway"

// Names and ports of abl's own on a role's networks.
const (
	AppAlias     = "app"
	BrokerPort   = 7070
	GatewayAlias = "gateway"
	GatewayPort  = 8080
	HolderName   = "holder.abl.invalid" // a name that the holder's resolver alone knows, as 127.0.0.1
)
