package detect

import "testing"

// runnable accepts the commands that run in the repository with the tools of the project.
func TestRunnable(t *testing.T) {
	node := map[string]string{
		"package.json": `{"scripts": {"start": "node server.js", "prod": "node dist/main.js", "build": "tsc",
			"up": "docker compose up"}}`,
		"server.js": "", "lib/index.js": "",
	}
	python := map[string]string{"requirements.txt": "gunicorn\nuvicorn\nhypercorn\nfastapi\n", "run.py": "",
		"manage.py": "", "a.py": "", "a/b/__init__.py": "", "backend/web/main.py": ""}
	bare := map[string]string{"run.py": ""}
	for _, tt := range []struct {
		stack         string
		files         map[string]string
		command, want string
	}{
		{"node", node, "npm start", "npm start"},
		{"node", node, "npm run start -- --x", "npm start -- --x"},
		{"node", node, "yarn prod", "npm run build && npm run prod"},
		{"node", node, "exec node server.js", "node server.js"},
		{"node", node, "NODE_ENV=production node --enable-source-maps ./server",
			"NODE_ENV=production node --enable-source-maps ./server"},
		{"node", node, "node lib", "node lib"},
		{"node", node, "node dist/main.js", "npm run build && node dist/main.js"},
		{"node", node, "node gone.js", ""},
		{"node", node, "npm run gone", ""},
		{"node", node, "npm run up", ""},
		{"node", node, "/entrypoint.sh npm start", ""},
		{"node", node, "NODE_ENV=production", ""},
		{"python", python, "python run.py", ".venv/bin/python run.py"},
		{"python", python, "python3 -m thing", ".venv/bin/python -m thing"},
		{"python", python, "python gone.py", ""},
		{"python", python, "python", ""},
		{"python", python, "poetry run gunicorn a:b", ".venv/bin/gunicorn --bind 0.0.0.0:${PORT:-8000} a:b"},
		{"python", python, "uv sync", ""},
		{"python", python, "gunicorn -b :8001 a:b", ".venv/bin/gunicorn -b :8001 a:b"},
		{"python", python, "gunicorn -c gone.py a:b", ".venv/bin/gunicorn -c gone.py a:b"},
		{"python", python, "uvicorn a:b --port 9", ".venv/bin/uvicorn a:b --port 9 --host 0.0.0.0"},
		{"python", python, "uvicorn a:b --host ::", ".venv/bin/uvicorn a:b --host ::"},
		{"python", python, "hypercorn a:b", ".venv/bin/hypercorn --bind 0.0.0.0:8000 a:b"},
		{"python", python, "fastapi run a.py", ".venv/bin/fastapi run a.py"},
		{"python", python, "celery -A a worker", ""},
		{"python", python, "gunicorn a.b:c", ".venv/bin/gunicorn --bind 0.0.0.0:${PORT:-8000} a.b:c"},
		{"python", python, "uvicorn web.main:app --host ::", "PYTHONPATH=backend .venv/bin/uvicorn web.main:app --host ::"},
		{"python", python, "uvicorn gone:app", ""},
		{"python", python, "python manage.py runserver", ".venv/bin/python manage.py runserver 0.0.0.0:8000"},
		{"python", python, "python manage.py migrate && gunicorn -b :1 a",
			".venv/bin/python manage.py migrate && .venv/bin/gunicorn -b :1 a"},
		{"python", bare, "python3 run.py", "python3 run.py"},
		{"ruby", nil, "bundle exec puma", "bundle exec puma"},
		{"php", nil, "php -S 0.0.0.0:80", "php -S 0.0.0.0:80"},
		{"php", nil, "apache2-foreground", ""},
		{"go", nil, "go run ./cmd/x", "go run ./cmd/x"},
		{"go", nil, "/bin/server", ""},
		{"rust", nil, "cargo run", "cargo run"},
		{"none", nil, "make run", ""},
		{"none", nil, "a\nb", ""},
	} {
		t.Run(tt.stack+" "+tt.command, func(t *testing.T) {
			p := newProject(folder{tree: files(tt.files)}, Wish{Stack: tt.stack})
			p.findStack()
			p.language.load()
			if got := p.runnable(tt.command); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestPortIn(t *testing.T) {
	for command, want := range map[string]int{
		"x --port 8000":                  8000,
		"x --port=81":                    81,
		"x -p 82":                        82,
		"x -b 0.0.0.0:83":                83,
		"x --bind :84":                   84,
		"manage.py runserver 0.0.0.0:85": 85,
		"php -S localhost:86 -t x":       86,
		"PORT=87 x":                      87,
		"x --bind 0.0.0.0:${PORT:-88}":   88,
		"uvicorn a:b":                    8000,
		"flask run":                      5000,
		"uvicorn a:b --port $PORT":       0,
		"x":                              0,
		"x --ports 1":                    0,
		"streamlit run a.py":             8501,
	} {
		t.Run(command, func(t *testing.T) {
			if got := portIn(command); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}
