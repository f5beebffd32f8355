"""External adapters: transports, models, telemetry."""
