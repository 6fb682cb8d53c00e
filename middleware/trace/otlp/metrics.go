package otlp

import (
	"context"
	"math"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/encoding/protowire"
)

// NewMetricExporter returns an exporter for the SDK's periodic reader. It returns an error if the endpoint is invalid.
func NewMetricExporter(o Options) (sdkmetric.Exporter, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return metricExporter{c}, nil
}

type metricExporter struct{ *client }

// Temporality implements sdkmetric.Exporter. It returns delta only if the options say so, and only for
// counters and histograms.
func (e metricExporter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	if e.o.Delta && (k == sdkmetric.InstrumentKindCounter || k == sdkmetric.InstrumentKindHistogram) {
		return metricdata.DeltaTemporality
	}
	return metricdata.CumulativeTemporality
}

// temporality appends an AggregationTemporality as field 2.
func temporality(b []byte, t metricdata.Temporality) []byte {
	if t == metricdata.DeltaTemporality {
		return number(b, 2, 1)
	}
	return number(b, 2, 2)
}

func (metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// Export always returns nil, because the SDK would pass an error to a global handler.
func (e metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if len(m.ScopeMetrics) > 0 {
		e.send(ctx, appendMetrics(nil, m))
	}
	return nil
}

func (metricExporter) ForceFlush(context.Context) error { return nil }

// appendMetrics appends an ExportMetricsServiceRequest.
func appendMetrics(b []byte, m *metricdata.ResourceMetrics) []byte {
	return message(b, 1, func(b []byte) []byte { // ResourceMetrics
		b = resourceField(b, 1, m.Resource)
		for _, s := range m.ScopeMetrics {
			b = message(b, 2, func(b []byte) []byte {
				b = scopeField(b, 1, s.Scope)
				for _, one := range s.Metrics {
					b = message(b, 2, func(b []byte) []byte { return appendMetric(b, one) })
				}
				return text(b, 3, s.Scope.SchemaURL)
			})
		}
		return b
	})
}

func appendMetric(b []byte, m metricdata.Metrics) []byte {
	b = text(text(text(b, 1, m.Name), 2, m.Description), 3, m.Unit)
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return message(b, 7, func(b []byte) []byte { return appendSum(b, data) })
	case metricdata.Histogram[float64]:
		return message(b, 9, func(b []byte) []byte { return appendHistogram(b, data) })
	}
	return b
}

func appendSum(b []byte, sum metricdata.Sum[int64]) []byte {
	for _, p := range sum.DataPoints {
		b = message(b, 1, func(b []byte) []byte {
			b = nanos(b, 2, p.StartTime)
			b = nanos(b, 3, p.Time)
			b = fixed64(b, 6, uint64(p.Value))
			return attributes(b, 7, p.Attributes.ToSlice())
		})
	}
	return number(temporality(b, sum.Temporality), 3, protowire.EncodeBool(sum.IsMonotonic))
}

func appendHistogram(b []byte, h metricdata.Histogram[float64]) []byte {
	for _, p := range h.DataPoints {
		b = message(b, 1, func(b []byte) []byte { return appendPoint(b, p) })
	}
	return temporality(b, h.Temporality)
}

func appendPoint(b []byte, p metricdata.HistogramDataPoint[float64]) []byte {
	b = nanos(b, 2, p.StartTime)
	b = nanos(b, 3, p.Time)
	b = fixed64(b, 4, p.Count)
	b = double(b, 5, p.Sum)
	b = message(b, 6, func(b []byte) []byte { // packed
		for _, n := range p.BucketCounts {
			b = protowire.AppendFixed64(b, n)
		}
		return b
	})
	b = message(b, 7, func(b []byte) []byte { // packed
		for _, f := range p.Bounds {
			b = protowire.AppendFixed64(b, math.Float64bits(f))
		}
		return b
	})
	b = attributes(b, 9, p.Attributes.ToSlice())
	if v, ok := p.Min.Value(); ok {
		b = double(b, 11, v)
	}
	if v, ok := p.Max.Value(); ok {
		b = double(b, 12, v)
	}
	return b
}
