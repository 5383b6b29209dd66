// Package helper defines the paths, files and messages that abl and its helper in containers share.
package helper

// Paths in containers.
const (
	// Src is the Builder's workspace, or the app's copy of the source.
	Src     = "/workspace/src"
	Tests   = "/workspace/tests" // the Verifier's workspace
	Specs   = "/workspace/specs"
	Bin     = "/abl/bin" // the static helper under all of its names
	In      = "/abl/in"  // files from abl for this call
	Prompt  = "/abl/in/prompt.md"
	Run     = "/abl/in/run.json"      // for abl-run
	Cmds    = "/abl/in/commands.json" // for abl-cmd
	Broker  = "/abl/in/broker.json"   // for abl-broker
	Probe   = "/abl/in/probe.json"    // the checks for the container's first program
	Out     = "/abl/out/stdout"
	Err     = "/abl/out/stderr"
	Events  = "/abl/out/events"
	AppLog  = "/abl/out/app.log"
	Record  = "/abl/out/record" // the exchanges of a witness
	Sockets = "/abl/sockets"    // sockets between the holders of the app and of its tests
	Home    = "/home/agent"
	User    = "agent" // name of the role's user

	// The image's files with users and groups. Home has files with the same names after a dot.
	Users      = "/abl/user"
	PasswdFile = "passwd"
	GroupFile  = "group"

	// The sockets in Sockets.
	AppSocket    = "app"
	BrokerSocket = "broker"

	// Exchange has files for a program and from it, unless ABL_EXCHANGE names another directory.
	Exchange = "/tmp/exchange"
)

// LogMax is the maximum number of bytes that the broker writes to AppLog.
const LogMax = 64 << 20

// Names of the static helper (links in Bin).
const (
	HelperCmd    = "abl-cmd"    // declared commands by name, and the built-in ones
	HelperRun    = "abl-run"    // runs an agent with a deadline and writes its output to files
	HelperAgent  = "abl-agent"  // the scripted agent
	HelperACP    = "abl-acp"    // asks an agent by the Agent Client Protocol
	HelperBroker = "abl-broker" // starts and probes the app, serves abl-cmd
	// HelperHolder holds a network namespace, resolves no DNS names and relays connections to the
	// app.
	HelperHolder = "abl-holder"
	HelperProbe  = "abl-probe" // probes its container, or responds to the probes of others
	HelperKill   = "abl-kill"  // kills the processes of a container that the engine cannot stop
)

// Gateway is the name of the gateway's program, in Bin of its image.
const Gateway = "abl-gateway"

// Names and ports of abl on a role's networks.
const (
	AppAlias     = "app"
	BrokerPort   = 7070
	GatewayAlias = "gateway"
	GatewayPort  = 8080
	HolderName   = "holder.abl.invalid" // resolves to 127.0.0.1 with the holder's resolver only
)
