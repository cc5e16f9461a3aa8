# Short names for what CONTRIBUTING.md says.

.PHONY: demo test

demo:
	cargo run --release --locked -- demo

test:
	./test
