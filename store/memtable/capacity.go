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

// bill adds up what a request consumes of each table, if it asks for that.
type bill struct {
	wanted  types.ReturnConsumedCapacity
	byTable map[string]float64 // nil: not wanted
}

func newBill(wanted types.ReturnConsumedCapacity) bill {
	if wanted == "" || wanted == types.ReturnConsumedCapacityNone {
		return bill{}
	}
	return bill{wanted, make(map[string]float64)}
}

func (b bill) add(table string, units float64) {
	if b.byTable != nil {
		b.byTable[table] += units
	}
}

// tables reports in the order of the tables' names.
func (b bill) tables() []types.ConsumedCapacity {
	var all []types.ConsumedCapacity
	for _, name := range sortedKeys(b.byTable) {
		if one := consumed(b.wanted, name, b.byTable[name]); one != nil {
			all = append(all, *one)
		}
	}
	return all
}
