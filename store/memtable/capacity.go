package memtable

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Sizes in bytes that one capacity unit pays for.
const (
	readUnitBytes  = 4096
	writeUnitBytes = 1024
)

// units rounds a size up to whole capacity units, at least one.
func units(size, unit int) float64 {
	return float64(max(1, (size+unit-1)/unit))
}

// readUnits is the price of a query or scan that went over so many bytes.
func readUnits(size int, consistent *bool) float64 {
	whole := units(size, readUnitBytes)
	if aws.ToBool(consistent) {
		return whole
	}
	return whole / 2
}

// consumed reports a table's capacity in the detail that the request asked
// for, nil for none.
func consumed(wanted types.ReturnConsumedCapacity, table string, units float64) *types.ConsumedCapacity {
	switch wanted {
	case types.ReturnConsumedCapacityTotal:
		return &types.ConsumedCapacity{TableName: aws.String(table), CapacityUnits: aws.Float64(units)}
	case types.ReturnConsumedCapacityIndexes:
		return &types.ConsumedCapacity{
			TableName:     aws.String(table),
			CapacityUnits: aws.Float64(units),
			Table:         &types.Capacity{CapacityUnits: aws.Float64(units)},
		}
	}
	return nil
}

// consumedTables reports several tables, in the order of their names.
func consumedTables(wanted types.ReturnConsumedCapacity, byTable map[string]float64) []types.ConsumedCapacity {
	var all []types.ConsumedCapacity
	for _, name := range sortedKeys(byTable) {
		if one := consumed(wanted, name, byTable[name]); one != nil {
			all = append(all, *one)
		}
	}
	return all
}
