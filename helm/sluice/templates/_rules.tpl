{{- /*
What the operator may do in the namespaces it serves. docs/security.md gives the reason for each rule;
a test compares the two.
*/ -}}
{{- define "sluice.operatorRules" -}}
- apiGroups: [sluice.dev]
  resources: [streamcopies, streamstores]
  verbs: [get, list, watch, patch]
- apiGroups: [sluice.dev]
  resources: [streamcopies/status, streamstores/status]
  verbs: [get, patch]
- apiGroups: [sluice.dev]
  resources: [streamcopies/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, create, patch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get]
{{- end }}

{{- /* What a driver with executors may do in its own namespace. */ -}}
{{- define "sluice.driverRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete, deletecollection]
{{- end }}
