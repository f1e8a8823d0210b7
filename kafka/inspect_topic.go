package kafka

import (
	"context"
	"slices"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// TopicState is what a cluster says of a topic.
type TopicState struct {
	Name       string
	Fault      *Trouble // nil: the topic is there
	Partitions []PartitionState
	// Permitted are the operations that we may do with it; nil: the brokers do not say.
	Permitted []Operation
	// Settings are its properties that are in effect, by name; nil with SettingsFault.
	Settings      map[string]string
	SettingsFault *Trouble
}

// PartitionState is one partition of a topic. InSync counts its leader too.
type PartitionState struct {
	ID               int
	Leaderless       bool
	Replicas, InSync int
}

// Operation is what an access rule may permit on a topic.
type Operation string

// The operations that a relay needs of its topics; DescribeSettings lets it know a
// topic's limit of size beforehand.
const (
	Write            Operation = "WRITE"
	Describe         Operation = "DESCRIBE"
	DescribeSettings Operation = "DESCRIBE_CONFIGS"
)

// Topics asks about topics, and about their settings. The answers come in the order
// of the names.
func (i *Inspector) Topics(ctx context.Context, names []string) ([]TopicState, error) {
	states := make([]TopicState, len(names))
	var ask []string
	for n, name := range names {
		states[n].Name = name
		if fault := inspectTopic(name); fault != nil {
			states[n].Fault = &Trouble{Kind: Invalid, Code: fault.Code, Text: fault.Text}
			continue
		}
		ask = append(ask, name)
	}
	if len(ask) == 0 {
		return states, nil
	}
	described, err := i.admin.DescribeTopics(ctx, ck.NewTopicCollectionOfTopicNames(ask), ck.SetAdminOptionIncludeAuthorizedOperations(true))
	if err != nil {
		return nil, i.trouble(err)
	}
	byName := make(map[string]ck.TopicDescription, len(ask))
	for _, d := range described.TopicDescriptions {
		byName[d.Name] = d
	}
	for n := range states {
		if states[n].Fault == nil {
			i.fill(&states[n], byName[states[n].Name])
		}
	}
	i.fillSettings(ctx, states)
	return states, nil
}

// fill takes what the brokers say of a topic.
func (i *Inspector) fill(state *TopicState, d ck.TopicDescription) {
	if state.Fault = i.trouble(faultOfResult(d.Error)); state.Fault != nil {
		return
	}
	for _, p := range d.Partitions {
		state.Partitions = append(state.Partitions, PartitionState{
			ID: p.Partition, Leaderless: p.Leader == nil || p.Leader.ID < 0, Replicas: len(p.Replicas), InSync: len(p.Isr),
		})
	}
	if len(d.Partitions) == 0 {
		state.Fault = &Trouble{Kind: Missing, Code: "UNKNOWN_TOPIC_OR_PART", Text: "the topic does not exist"}
	}
	for _, operation := range d.AuthorizedOperations {
		switch operation {
		case ck.ACLOperationWrite:
			state.Permitted = append(state.Permitted, Write)
		case ck.ACLOperationDescribe:
			state.Permitted = append(state.Permitted, Describe)
		case ck.ACLOperationDescribeConfigs:
			state.Permitted = append(state.Permitted, DescribeSettings)
		}
	}
}

// fillSettings asks for the settings of the topics that are there.
func (i *Inspector) fillSettings(ctx context.Context, states []TopicState) {
	var resources []ck.ConfigResource
	for _, s := range states {
		if s.Fault == nil {
			resources = append(resources, ck.ConfigResource{Type: ck.ResourceTopic, Name: s.Name})
		}
	}
	if len(resources) == 0 {
		return
	}
	results, err := i.admin.DescribeConfigs(ctx, resources)
	for n := range states {
		s := &states[n]
		if s.Fault != nil {
			continue
		}
		at := slices.IndexFunc(results, func(r ck.ConfigResourceResult) bool { return r.Name == s.Name })
		switch {
		case err != nil:
			s.SettingsFault = i.trouble(err)
		case at < 0:
			s.SettingsFault = &Trouble{Kind: Refused, Code: "CLIENT", Text: "the answer does not have the topic"}
		default:
			if s.SettingsFault = i.trouble(faultOfResult(results[at].Error)); s.SettingsFault != nil {
				continue
			}
			s.Settings = make(map[string]string, len(results[at].Config))
			for name, entry := range results[at].Config {
				s.Settings[name] = entry.Value
			}
		}
	}
}
