package compile

import (
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

func (r *argumentReader) argument(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if argument.Type.NamesObject() {
		return r.objectName(argument, node, at)
	}
	switch argument.Type {
	case verb.Buffer:
		return r.bufferName(argument, node, at)
	case verb.Content:
		return r.content(argument, node, at)
	case verb.Data:
		return r.data(argument.Name, node, at)
	case verb.Endpoint:
		return r.endpoint(argument, node, at)
	case verb.Peer:
		return r.peer(argument, node, at)
	case verb.Remote:
		return r.remote(argument, node, at)
	case verb.QueuePair:
		return r.queuePair(r.defaultQueuePair, node, at)
	case verb.Role:
		return r.roleName(argument, node, at)
	case verb.FaultName:
		return r.faultName(argument, node, at)
	case verb.Roles:
		return r.roleList(argument, node, at)
	case verb.Rights, verb.PeerRights:
		return r.rights(argument, node)
	case verb.Fields:
		return r.fields(argument, node, at)
	case verb.Words:
		return r.wordList(argument, node, at)
	case verb.Condition:
		return r.conditionArgument(argument, node, at)
	case verb.Sizes:
		return r.sizes(argument, node, at)
	case verb.Counters:
		return r.counters(argument, node, at)
	case verb.Options:
		return r.optionMapping(argument, node, at)
	case verb.OptionList:
		return r.optionList(argument, node, at)
	case verb.Layout:
		value, layout := r.compiler.layout(node)
		r.layout = layout
		return value
	}
	return r.scalar(argument, node, at)
}
