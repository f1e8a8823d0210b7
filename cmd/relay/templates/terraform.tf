# The outbox of table {{table}}. Made by: relay table terraform

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
  name         = {{quoted table}}
  billing_mode = {{billing}}
{{keys}}

  deletion_protection_enabled = true

{{attributes}}

  point_in_time_recovery {
    enabled = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

{{policies}}
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

{{outputs}}

output "relay_role_arn" {
  value = one(aws_iam_role.relay[*].arn)
}
