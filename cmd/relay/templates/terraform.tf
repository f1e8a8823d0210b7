# The outbox of table {{.Table}}. Made by: relay table terraform

terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 4.59" # the first that knows deletion_protection_enabled
    }
  }
}

variable "relay_trust_policy" {
  description = "JSON of the trust policy of a role for relays, such as of a Kubernetes service account (IRSA). Null when relays have a role already, to which relay_policy_arn is then attached."
  type        = string
  default     = null
}

resource "aws_dynamodb_table" "outbox" {
  name         = {{hcl .Table}}
  billing_mode = {{hcl .BillingMode}}
{{- range .Attributes}}
  {{if eq .KeyType "HASH"}}hash_key     = {{hcl .Name}}{{else}}range_key    = {{hcl .Name}}{{end}}
{{- end}}

  deletion_protection_enabled = true
{{range .Attributes}}
  attribute {
    name = {{hcl .Name}}
    type = {{hcl .Type}}
  }
{{end}}
  point_in_time_recovery {
    enabled = true
  }

  lifecycle {
    prevent_destroy = true
  }
}
{{range .Roles}}
resource "aws_iam_policy" {{hcl .Name}} {
  name_prefix = "outbox-{{.Name}}-"
  description = "What {{.Name}} needs on the outbox"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "Outbox{{.Title}}"
      Effect = "Allow"
      Action = [
{{- range .Actions}}
        {{hcl .}},
{{- end}}
      ]
      Resource = aws_dynamodb_table.outbox.arn
    }]
  })
}
{{end}}
resource "aws_iam_role" "relay" {
  count = var.relay_trust_policy == null ? 0 : 1

  name_prefix        = "outbox-relay-"
  description        = "Relays of the outbox"
  assume_role_policy = var.relay_trust_policy
}

resource "aws_iam_role_policy_attachment" "relay" {
  count = var.relay_trust_policy == null ? 0 : 1

  role       = aws_iam_role.relay[0].name
  policy_arn = aws_iam_policy.relay.arn
}

output "table_arn" {
  value = aws_dynamodb_table.outbox.arn
}
{{range .Roles}}
output "{{.Name}}_policy_arn" {
  value = aws_iam_policy.{{.Name}}.arn
}
{{end}}
output "relay_role_arn" {
  value = one(aws_iam_role.relay[*].arn)
}
