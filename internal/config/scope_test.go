package config

import "testing"

// isUsers reports whether a repository may not set the key.
func (k key) isUsers() bool {
	s, known := scopeOf(k.path)
	return s.why != "" && (known || len(k.below()) == 0) // a section's keys have one each
}

// A key without a row is the user's, so a forgotten one is refused where it should not be.
func TestEveryKeyHasAScope(t *testing.T) {
	for _, section := range top.below() {
		for _, k := range section.named() {
			if _, found := scopeOf(k.path); !found && len(k.below()) == 0 {
				t.Errorf("row for %s in scope.go: got none, want one", k.path)
			}
		}
	}
	for _, key := range []string{"network.tunnel", "agents.mine.unheard_of", "source.remote", "new"} {
		if s, found := scopeOf(key); found || !s.acts(nil, "x") {
			t.Errorf("%s: got scope %+v, want one that acts, since the key is unknown", key, s)
		}
	}
}

// Hosts that may have private addresses are the user's to allow, and others are not.
func TestPrivateHostsAreTheUsers(t *testing.T) {
	for text, want := range map[string]bool{
		"npm, a.example": false, "a.example private": true, "a.example private, npm": true, "npm, a.example:8443 private": true, "private.example": false,
	} {
		if s, found := scopeOf("network.allow"); !found || s.acts(nil, text) != want {
			t.Errorf("%q acts on the user's network: got %t, want %t", text, !want, want)
		}
	}
}
