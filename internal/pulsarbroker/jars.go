// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed pom.xml
var pom []byte

// install is what a test says that finds no broker.
const install = "run make needs"

// cache returns the folder in which tools/pulsar.sh has put the jars that pom.xml
// names: jars/, and classes.jsa, an archive of the classes that a broker loads,
// which starts it in a third of the time.
func cache() (string, error) {
	root := os.Getenv("XDG_CACHE_HOME")
	if root == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the cache: %w", err)
		}
		root = filepath.Join(home, ".cache")
	}
	sum := sha256.Sum256(pom)
	folder := filepath.Join(root, "longshore", "pulsar", hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(filepath.Join(folder, "jars")); err != nil {
		return "", fmt.Errorf("Pulsar's jars are missing: %w: %s", err, install) //nolint:staticcheck // a name
	}
	return folder, nil
}

// java returns the command that runs a broker, up to its own arguments, and
// whether there is an archive of classes beside the jars.
func java(c Config, folder string) (*exec.Cmd, error) {
	program, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New("java is missing: " + install)
	}
	at, err := cache()
	if err != nil {
		return nil, err
	}
	jars, err := filepath.Glob(filepath.Join(at, "jars", "*.jar"))
	if err != nil {
		return nil, fmt.Errorf("list the jars: %w", err)
	}
	args := []string{"-XX:SharedArchiveFile=" + filepath.Join(at, "classes.jsa")}
	if c.Archive != "" {
		args = []string{"-XX:ArchiveClassesAtExit=" + c.Archive}
	}
	args = append(args, flags...)
	if !c.Load {
		args = append(args, light...)
	}
	// What it unpacks stays behind where it is killed: it goes with the folder.
	args = append(args, "-Djava.io.tmpdir="+folder)
	args = append(args, "-Dlog4j.configurationFile="+filepath.Join(folder, "log4j2.xml"), "-cp", strings.Join(jars, ":"))
	return exec.Command(program, args...), nil
}

// flags are those of every broker. Pulsar and its libraries look into these
// packages of Java.
var flags = []string{
	"--add-opens=java.base/sun.net=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED",
	"--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
	"--add-opens=java.base/jdk.internal.platform=ALL-UNNAMED", "--add-opens=java.management/sun.management=ALL-UNNAMED",
	"-Dio.netty.tryReflectionSetAccessible=true", "-XX:-UsePerfData", "-Xlog:disable", "-Xms64m", "-Xmx1g", "-XX:MaxDirectMemorySize=1g",
	"-XX:+ExitOnOutOfMemoryError",
}

// light are those of a broker that starts fast and whose load is small.
var light = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ActiveProcessorCount=2"}
