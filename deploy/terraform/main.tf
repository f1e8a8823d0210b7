# The outbox of table orders-outbox. Made by: relay table terraform

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
  name         = "orders-outbox"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "PK"
  range_key    = "SK"

  deletion_protection_enabled = true

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_iam_policy" "relay" {
  name_prefix = "outbox-relay-"
  description = "What relay needs on the outbox"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "OutboxRelay"
      Effect = "Allow"
      Action = [
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:BatchWriteItem",
        "dynamodb:ConditionCheckItem",
      ]
      Resource = aws_dynamodb_table.outbox.arn
    }]
  })
}

resource "aws_iam_policy" "writer" {
  name_prefix = "outbox-writer-"
  description = "What writer needs on the outbox"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "OutboxWriter"
      Effect = "Allow"
      Action = [
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
      ]
      Resource = aws_dynamodb_table.outbox.arn
    }]
  })
}

resource "aws_iam_policy" "operator" {
  name_prefix = "outbox-operator-"
  description = "What operator needs on the outbox"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "OutboxOperator"
      Effect = "Allow"
      Action = [
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:DescribeTable",
        "dynamodb:DescribeTimeToLive",
      ]
      Resource = aws_dynamodb_table.outbox.arn
    }]
  })
}

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

output "relay_policy_arn" {
  value = aws_iam_policy.relay.arn
}

output "writer_policy_arn" {
  value = aws_iam_policy.writer.arn
}

output "operator_policy_arn" {
  value = aws_iam_policy.operator.arn
}

output "relay_role_arn" {
  value = one(aws_iam_role.relay[*].arn)
}
