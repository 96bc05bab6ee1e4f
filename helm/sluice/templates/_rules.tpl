{{- /*
What the operator may do in the namespaces it serves. docs/security.md gives the reason for each rule.
Tests compare the two, and both with what the operator's code calls.
*/ -}}
{{- define "sluice.operatorRules" -}}
- apiGroups: [sluice.dev]
  resources: [streamcopies, streamstores]
  verbs: [get, list, watch, patch]
- apiGroups: [sluice.dev]
  resources: [streamcopies/status, streamstores/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch, create, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, create, patch]
{{- end }}

{{- /* What a driver with executors may do in its own namespace. */ -}}
{{- define "sluice.driverRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, deletecollection]
{{- end }}
