package config

// host is the shape of an entry of network.allow that is more than a text.
func host() object {
	return object{"type": "object", "additionalProperties": false, "required": []string{"host"}, "properties": object{
		"host":    object{"type": "string", "description": "A host with a port or without."},
		"private": object{"type": "boolean", "description": "Its addresses may be private ones."},
	}}
}
