package ground

import (
	"context"
	"fmt"
	"path/filepath"

	"abl/cmd/internal/exit"
	"abl/internal/cacerts"
	"abl/orchestrator/dirs"
	"abl/orchestrator/gateway/sidecar"
	"abl/roles/registry"
)

// caFile is in dirs.In of a box whose tools have to trust more than its image does.
const caFile = "ca.pem"

// Fetch lets the tools of a box through the gate to what network.allow lists.
// files have to be in the box's dirs.In for that.
func (g *Gate) Fetch(ctx context.Context, asker registry.Asker, allow []string, trust cacerts.Finder) (e registry.Egress, files map[string][]byte, err error) {
	if e, err = asker.Resolve(ctx, allow); err != nil {
		return e, nil, err
	}
	g.Setup.Connect = e.Hosts
	if g.Setup.Inside, err = sidecar.MachineAddrs(); err != nil {
		return e, nil, err
	}
	if !trust.Own() {
		return e, nil, nil
	}
	certs, err := trust.Bundle()
	if err != nil {
		return e, nil, err
	}
	g.Certs = registry.CertEnv(filepath.Join(dirs.In, caFile))
	return e, map[string][]byte{caFile: certs}, nil
}

// Trust tells the gate by whose word it believes an upstream.
func (g *Gate) Trust(trust cacerts.Finder) error {
	certs, err := trust.Bundle()
	if err != nil {
		return exit.With(exit.Environment, fmt.Errorf("the gateway cannot check whom it talks to: %w", err), "install ca-certificates, or name a file in network.ca_cert")
	}
	g.Setup.CA = string(certs)
	return nil
}
