{{- define "sm.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "sm.gateway" -}}
{{ .Values.name }}-gateway
{{- end }}

{{- define "sm.internal" -}}
{{ .Values.name }}-internal
{{- end }}

{{- define "sm.worker" -}}
{{ .Values.name }}-worker
{{- end }}

{{- define "sm.secret" -}}
{{ .Values.existingSecret | default .Values.name }}
{{- end }}

{{- define "sm.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{/* The names of the secrets of registries, with commas between them. */}}
{{- define "sm.pullSecrets" -}}
{{- range $index, $secret := . }}{{ if $index }},{{ end }}{{ $secret.name }}{{ end -}}
{{- end }}

{{/* What every container may do: nothing but run. */}}
{{- define "sm.confined" -}}
runAsNonRoot: true
runAsUser: 10001
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end }}

{{/* What every pod of ours that has a database is made of; its roles are given as "roles". */}}
{{- define "sm.env" -}}
envFrom:
  - configMapRef:
      name: {{ .Values.name }}
  - secretRef:
      name: {{ include "sm.secret" . }}
volumeMounts:
  - name: scratch
    mountPath: /tmp
  - name: data
    mountPath: /data
{{- end }}

{{- define "sm.volumes" -}}
- name: scratch
  emptyDir: {}
- name: data
  emptyDir: {}
{{- end }}
