resource "aws_iam_policy" "{{name}}" {
  name_prefix = "outbox-{{name}}-"
  description = "What {{name}} needs on the outbox"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "Outbox{{title}}"
      Effect = "Allow"
      Action = [
{{actions}}
      ]
      Resource = aws_dynamodb_table.outbox.arn
    }]
  })
}
