package otlp

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/encoding/protowire"
)

// The field numbers are those of the .proto files of opentelemetry-proto 1.x, which are
// stable.

// message appends a field that is a message. write appends the message to an empty slice.
func message(b []byte, field protowire.Number, write func([]byte) []byte) []byte {
	return raw(b, field, write(nil))
}

// text appends a string, and nothing if it is empty.
func text(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func raw(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// number appends a varint, and nothing if it is 0.
func number(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func fixed64(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), n)
}

func double(b []byte, field protowire.Number, f float64) []byte {
	return fixed64(b, field, math.Float64bits(f))
}

// nanos appends a time as nanoseconds since 1970.
func nanos(b []byte, field protowire.Number, t time.Time) []byte {
	return fixed64(b, field, uint64(t.UnixNano()))
}

func attributes(b []byte, field protowire.Number, all []attribute.KeyValue) []byte {
	for _, kv := range all {
		b = message(b, field, func(b []byte) []byte {
			b = text(b, 1, string(kv.Key))
			return message(b, 2, func(b []byte) []byte { return anyValue(b, kv.Value) })
		})
	}
	return b
}

// anyValue appends the content of an AnyValue.
func anyValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return double(b, 4, v.AsFloat64())
	case attribute.STRINGSLICE:
		return message(b, 5, func(b []byte) []byte {
			for _, s := range v.AsStringSlice() {
				b = message(b, 1, func(b []byte) []byte { return stringValue(b, s) })
			}
			return b
		})
	}
	return stringValue(b, v.String())
}

func stringValue(b []byte, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), s)
}

// resourceField appends a Resource.
func resourceField(b []byte, field protowire.Number, r *resource.Resource) []byte {
	return message(b, field, func(b []byte) []byte { return attributes(b, 1, r.Attributes()) })
}

// scopeField appends an InstrumentationScope.
func scopeField(b []byte, field protowire.Number, s instrumentation.Scope) []byte {
	return message(b, field, func(b []byte) []byte {
		b = text(text(b, 1, s.Name), 2, s.Version)
		return attributes(b, 3, s.Attributes.ToSlice())
	})
}

// field returns the last value of a field of a message, of its bytes or its number; none if the
// message is invalid.
func field(b []byte, want protowire.Number) (text []byte, n uint64) {
	for len(b) > 0 {
		num, kind, length := protowire.ConsumeField(b)
		if length < 0 {
			return nil, 0
		}
		_, _, tag := protowire.ConsumeTag(b)
		switch {
		case num != want:
		case kind == protowire.BytesType:
			text, _ = protowire.ConsumeBytes(b[tag:length])
		case kind == protowire.VarintType:
			n, _ = protowire.ConsumeVarint(b[tag:length])
		}
		b = b[length:]
	}
	return text, n
}
