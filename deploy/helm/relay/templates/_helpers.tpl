{{- define "relay.name" -}}
{{- $name := printf "%s-%s" .Release.Name .Chart.Name }}
{{- contains .Chart.Name .Release.Name | ternary .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "relay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "relay.labels" -}}
{{ include "relay.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "relay.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "relay.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "relay.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /*
A value as relay reads it: numbers have been through JSON by now, and a large one would
be written as 1e+06.
*/}}
{{- define "relay.value" -}}
{{- if kindIs "float64" . }}{{ if eq (floor .) . }}{{ int64 . | toString | quote }}{{ else }}{{ toString . | quote }}{{ end }}{{ else }}{{ toString . | quote }}{{ end }}
{{- end }}

{{- define "relay.file" -}}
{{- range $name, $value := omit .Values.settings "kafka" }}
{{ $name }}: {{ include "relay.value" $value }}
{{- end }}
shutdown-timeout: {{ printf "%ds" (int64 .Values.shutdownTimeoutSeconds) | quote }}
admin-addr: {{ printf ":%d" (int64 .Values.admin.port) | quote }}
{{- if .Values.secrets.adminToken }}
admin-token-file: "/etc/relay/admin/token"
{{- end }}
{{- with .Values.settings.kafka }}
kafka:
{{- range $property, $value := . }}
  {{ $property | quote }}: {{ include "relay.value" $value }}
{{- end }}
{{- end }}
{{- end }}
