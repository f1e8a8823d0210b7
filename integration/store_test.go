//go:build integration

package integration

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/store/storetest"
)

// The emulator keeps the promises that the in-memory table keeps: what the
// simulation proves on the one holds on the other.
func TestStoreConformance(t *testing.T) {
	endpoint := os.Getenv("INTEGRATION_DYNAMODB")
	if endpoint == "" {
		t.Fatal("INTEGRATION_DYNAMODB is not set; start the services and set it with: " +
			"scripts/services start && eval \"$(scripts/services env)\"")
	}
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	storetest.Run(t, func(*testing.T) storetest.Client { return client })
}
